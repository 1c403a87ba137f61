from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evals", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="evaluation",
            name="seats",
            field=models.JSONField(default=dict),
        ),
    ]
