from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0026_reasoning")]

    operations = [
        migrations.AddField(
            model_name="reply",
            name="bytes_sent",
            field=models.IntegerField(help_text="The length of the request's body.", null=True),
        ),
    ]
