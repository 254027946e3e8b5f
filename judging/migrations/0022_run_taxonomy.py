import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0025_taxonomy_of_every_project"),
        ("judging", "0021_run_diff_algorithm"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="taxonomy",
            field=models.ForeignKey(
                help_text="The version of the categories under which the items were chosen.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="annotation.taxonomyversion",
                to_field="digest",
            ),
        ),
    ]
