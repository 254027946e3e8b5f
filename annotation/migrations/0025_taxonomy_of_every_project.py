import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0024_shipped_taxonomy")]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="taxonomy",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="projects",
                to="annotation.taxonomyversion",
                to_field="digest",
            ),
        ),
    ]
