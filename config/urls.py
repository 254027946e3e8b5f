from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from config.health import healthz

urlpatterns = [
    # First, since programs call it most, and a resolver tries one pattern after the other.
    path("api/v1/", include("config.api")),
    path("", include("annotation.urls")),
    path("", include("judging.urls")),
    path("accounts/login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("healthz", healthz, name="healthz"),
    path("admin/", admin.site.urls),
]
