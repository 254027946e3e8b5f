from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    # First, since most requests come from programs and patterns are tried in order.
    path("api/v1/", include("config.api")),
    path("", include("annotation.urls")),
    path("", include("judging.urls")),
    path("accounts/", include("config.accounts")),
    path("", include("operation.urls")),
    # Everybody uses the same sign-in page, so that the limits on wrong passwords also apply to the
    # admin.
    path("admin/login/", secure_admin_login(admin.site.login)),
    path("admin/", admin.site.urls),
]

handler403 = "config.error_pages.permission_denied"
handler404 = "config.error_pages.page_not_found"
handler500 = "config.error_pages.server_error"
