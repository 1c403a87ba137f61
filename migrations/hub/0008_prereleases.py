from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hub", "0007_dependants")]

    operations = [migrations.AddField("Release", "allows_prereleases", models.BooleanField(default=False))]
