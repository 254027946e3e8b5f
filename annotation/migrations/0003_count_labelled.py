from django.db import migrations
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce


def count(apps, schema_editor):
    """Give each member the number of work labels in force, which was counted on demand before."""
    Membership = apps.get_model("annotation", "Membership")
    Label = apps.get_model("annotation", "Label")
    mine = Label.objects.filter(member=OuterRef("pk"), stage="work", current=True)
    number = mine.order_by().values("member").annotate(n=Count("pk")).values("n")
    Membership.objects.update(labelled=Coalesce(Subquery(number), 0))


class Migration(migrations.Migration):
    dependencies = [("annotation", "0002_vetting_workbench")]

    operations = [migrations.RunPython(count, migrations.RunPython.noop)]
