from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evals", "0003_samples_by_example"),
    ]

    operations = [
        migrations.AddField("evaluation", "group_id", models.CharField(blank=True, default="", max_length=25)),
        migrations.AddIndex(
            "evaluation",
            models.Index(condition=~models.Q(group_id=""), fields=["group_id"], name="evaluation_by_group"),
        ),
    ]
