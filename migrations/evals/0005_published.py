from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evals", "0004_evaluation_groups")]

    operations = [
        migrations.AddField("evaluation", "is_public", models.BooleanField(default=False)),
        migrations.AddField("evaluation", "ci_low", models.FloatField(null=True)),
        migrations.AddField("evaluation", "ci_high", models.FloatField(null=True)),
    ]
