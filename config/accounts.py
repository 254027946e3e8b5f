"""Sign-in, sign-out and passwords: the pages of allauth that this site uses.

The pages for sign-up and for several e-mail addresses are left out, since accounts need an
invitation.
"""

from allauth.account import views
from allauth.mfa.base import views as second_step
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as app
from allauth.mfa.webauthn import views as passkeys
from django.urls import path, re_path, reverse_lazy
from django.views.decorators.cache import never_cache

from config.mfa import PasskeyReauthenticateView, one_at_a_time, require_mfa, require_recent_sign_in
from config.openid import views as openid
from config.openid.protocol import PROVIDER

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("two-step/", never_cache(second_step.index), name="mfa_index"),
    path("two-step/sign-in/", second_step.authenticate, name="mfa_authenticate"),
    path("two-step/again/", second_step.reauthenticate, name="mfa_reauthenticate"),
    path(
        "two-step/app/",
        never_cache(require_recent_sign_in(one_at_a_time(app.activate_totp))),
        name="mfa_activate_totp",
    ),
    path("two-step/app/off/", require_mfa(app.deactivate_totp), name="mfa_deactivate_totp"),
    path(
        "two-step/passkeys/new/",
        never_cache(require_recent_sign_in(one_at_a_time(passkeys.add_webauthn))),
        name="mfa_add_webauthn",
    ),
    path(
        "two-step/passkeys/again/",
        never_cache(require_mfa(PasskeyReauthenticateView.as_view())),
        name="mfa_reauthenticate_webauthn",
    ),
    path(
        "two-step/passkeys/<int:pk>/remove/",
        require_mfa(passkeys.RemoveWebAuthnView.as_view(success_url=reverse_lazy("mfa_index"))),
        name="mfa_remove_webauthn",
    ),
    path(
        "two-step/codes/",
        never_cache(require_mfa(recovery_codes.view_recovery_codes)),
        name="mfa_view_recovery_codes",
    ),
    path(
        "two-step/codes/new/",
        require_mfa(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "two-step/codes/file/",
        require_mfa(recovery_codes.download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
    path("openid/", openid.linked_account, name="openid"),
    path(
        "openid/begin/",
        openid.begin_sign_in,
        {"provider_id": PROVIDER},
        name="openid_connect_login",
    ),
    path(
        "openid/back/",
        openid.finish_sign_in,
        {"provider_id": PROVIDER},
        name="openid_connect_callback",
    ),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("password/change/", views.password_change, name="account_change_password"),
    path("password/set/", require_recent_sign_in(views.password_set), name="account_set_password"),
    path("password/reset/", views.password_reset, name="account_reset_password"),
    path("password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
    path(
        "password/reset/key/done/",
        views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
]
