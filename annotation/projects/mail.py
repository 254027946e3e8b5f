"""What goes out by e-mail beside what accounts themselves send."""

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from annotation.models import Invitation


def send_invitation(invitation: Invitation, link: str) -> bool | None:
    """Send the link of an invitation; whether it went out, None if it was not to.

    Without a mail server nothing is sent, since the link would stand in the server's output.
    """
    if not invitation.email:
        return None
    if not settings.EMAIL_HOST:
        return False
    text = render_to_string("annotation/invitation.txt", {"invitation": invitation, "link": link})
    try:
        send_mail("An invitation to Blindspot", text, None, [invitation.email])
    except OSError:  # as all errors of smtplib are
        return False
    return True
