import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0022_label_first_shown")]

    operations = [
        migrations.CreateModel(
            name="TaxonomyVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=80)),
                ("number", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("definition", models.JSONField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("slug", "number"), name="taxonomy_number")
                ],
            },
        ),
        migrations.AddField(
            model_name="project",
            name="taxonomy",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="projects",
                to="annotation.taxonomyversion",
                to_field="digest",
            ),
        ),
    ]
