from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hub", "0002_lookalike_names")]

    operations = [
        migrations.AddField("release", "provenance", models.JSONField(default=dict)),
        migrations.AddField("release", "quarantined_at", models.DateTimeField(null=True)),
        migrations.AddField("release", "quarantine_reason", models.CharField(blank=True, default="", max_length=1000)),
    ]
