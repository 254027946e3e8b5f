"""The form of a webhook."""

from typing import Any

from django import forms

from judging.models import Webhook
from judging.webhooks.topics import TOPICS
from judging.webhooks.webhooks import MAX_ADDRESS


class WebhookForm(forms.Form):
    """Address and topics; `webhooks.check_webhook` says what is wrong with them."""

    address = forms.CharField(
        max_length=MAX_ADDRESS,
        help_text="Where messages are posted, for example https://hooks.example.org/blindspot. "
        "A path may carry a token of the receiver; leads and the audit see it.",
        widget=forms.TextInput(attrs={"type": "url", "autocomplete": "off", "spellcheck": "false"}),
    )
    topics = forms.MultipleChoiceField(
        label="Send messages about",
        choices=[(name, topic.title) for name, topic in TOPICS.items()],
        widget=forms.CheckboxSelectMultiple,
    )

    @classmethod
    def from_webhook(cls, webhook: Webhook | None, sent: Any = None) -> "WebhookForm":
        """Build the form of a webhook, or of a new one; `sent` is what a person has filled in."""
        if webhook is None:
            return cls(sent, initial={"topics": list(TOPICS)})
        return cls(sent, initial={"address": webhook.address, "topics": webhook.topic_list})
