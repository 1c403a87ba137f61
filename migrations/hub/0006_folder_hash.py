from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hub", "0005_browsing")]

    operations = [
        migrations.AddField("Release", "folder_hash", models.CharField(blank=True, default="", max_length=64)),
    ]
