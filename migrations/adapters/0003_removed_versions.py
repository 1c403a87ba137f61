from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("adapters", "0002_export")]

    operations = [migrations.AddField("Adapter", "removed_at", models.DateTimeField(null=True))]
