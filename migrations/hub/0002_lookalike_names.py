from django.db import migrations, models

# The rule of controlplane.hub.names.skeleton, for the names that are there already.
FILL = """
    SELECT set_config('rootstock.scope', 'system', true);
    UPDATE hub_environment
    SET skeleton = replace(replace(translate(normalized_name, '01i-', 'oll'), 'rn', 'm'), 'vv', 'w');
"""


class Migration(migrations.Migration):
    dependencies = [("hub", "0001_initial")]

    operations = [
        migrations.AddField("environment", "skeleton", models.CharField(max_length=100, default=""), preserve_default=False),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddIndex("environment", models.Index(fields=["skeleton"], name="environment_by_look")),
    ]
