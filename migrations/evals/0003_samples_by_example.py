from controlplane.core.tenancy import acting_as_system
from django.db import migrations, models

# Rows of before are known by their place; rollouts of ours count by task, pushed samples by what they call their example.
NAME = """
UPDATE evals_sample SET
    key = 'position:' || position,
    example = CASE WHEN (data->>'example_id') = '-1' AND attempt > 0 THEN ''
                   ELSE left(coalesce(data->>'example_id', data->>'task_id', 'position:' || position), 255) END,
    state = CASE WHEN attempt > 0 THEN coalesce(data->>'state', 'ok') WHEN reward IS NULL THEN 'unscored' ELSE 'ok' END
"""
NUMBER = """
UPDATE evals_sample AS sample SET rollout = counted.number FROM (
    SELECT id, row_number() OVER (PARTITION BY evaluation_id, example ORDER BY position) - 1 AS number FROM evals_sample
) AS counted WHERE counted.id = sample.id
"""


def fill(apps, schema_editor):
    with acting_as_system(), schema_editor.connection.cursor() as cursor:
        cursor.execute(NAME)
        cursor.execute(NUMBER)


class Migration(migrations.Migration):
    dependencies = [
        ("evals", "0002_evaluation_seats"),
    ]

    operations = [
        migrations.AddField("evaluationsample", "key", models.CharField(default="", max_length=280), preserve_default=False),
        migrations.AddField("evaluationsample", "example", models.CharField(blank=True, default="", max_length=255)),
        migrations.AddField("evaluationsample", "rollout", models.PositiveIntegerField(default=0)),
        migrations.AddField("evaluationsample", "state", models.CharField(default="ok", max_length=16)),
        migrations.AddField("evaluationsample", "duration_s", models.FloatField(null=True)),
        migrations.AddField("evaluationsample", "input_tokens", models.PositiveIntegerField(null=True)),
        migrations.AddField("evaluationsample", "output_tokens", models.PositiveIntegerField(null=True)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddConstraint(
            "evaluationsample", models.UniqueConstraint(fields=("evaluation", "key"), name="evaluation_sample_key_once")
        ),
        migrations.AddIndex(
            "evaluationsample", models.Index(fields=["evaluation", "example"], name="evaluation_sample_by_example")
        ),
    ]
