from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    # First, since programs call it most, and a resolver tries one pattern after the other.
    path("api/v1/", include("config.api")),
    path("", include("annotation.urls")),
    path("", include("judging.urls")),
    path("accounts/", include("config.accounts")),
    path("", include("operation.urls")),
    # One door for everybody, so that the limits on wrong passwords hold there too.
    path("admin/login/", secure_admin_login(admin.site.login)),
    path("admin/", admin.site.urls),
]

handler404 = "config.error_pages.page_not_found"
handler500 = "config.error_pages.server_error"
