"""Costs with twelve decimals: a token costs less than a millionth of what a million cost."""

from django.db import migrations, models


def _money(model: str, name: str, **given: object) -> migrations.AlterField:
    field = models.DecimalField(max_digits=20, decimal_places=12, **given)
    return migrations.AlterField(model_name=model, name=name, field=field)


class Migration(migrations.Migration):
    dependencies = [("judging", "0012_generating")]

    operations = [
        _money("budget", "reserved", default=0),
        _money("budget", "spent", default=0),
        _money("run", "reserved", default=0),
        _money("run", "spent", default=0),
        _money("request", "reserved", default=0),
        _money("reply", "cost", null=True),
    ]
