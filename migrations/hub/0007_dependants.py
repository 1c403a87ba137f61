import django.contrib.postgres.fields
import django.contrib.postgres.indexes
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hub", "0006_folder_hash")]

    operations = [
        migrations.AddField(
            "Release", "depends_on", django.contrib.postgres.fields.ArrayField(models.CharField(max_length=25), default=list)
        ),
        migrations.AddIndex("Release", django.contrib.postgres.indexes.GinIndex(fields=["depends_on"], name="release_by_dependency")),
    ]
