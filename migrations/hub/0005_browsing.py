import controlplane.core.clock
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import trainer.contracts.base
from controlplane.core.rls import EnableRowSecurity
from django.db import migrations, models

# What is known of environments that are there already; their READMEs are added by their next push.
FILL = """
    SELECT set_config('rootstock.scope', 'system', true);
    UPDATE hub_environment SET search =
        setweight(to_tsvector('simple', replace(normalized_name, '-', ' ')), 'A')
        || setweight(to_tsvector('english', replace(array_to_string(tags, ' '), '-', ' ')), 'B')
        || setweight(to_tsvector('english', description), 'C');
"""


def columns() -> list[tuple[str, models.Field]]:
    """What every row with a team has, and whose row it is."""
    return [
        ("id", models.CharField(default=trainer.contracts.base.new_id, editable=False, max_length=25, primary_key=True, serialize=False)),
        ("created_at", models.DateTimeField(db_default=controlplane.core.clock.DatabaseNow(), editable=False)),
        ("team", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="teams.team")),
        ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="teams.user")),
    ]


def of_environment(related_name: str) -> models.ForeignKey:
    return models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name=related_name, to="hub.environment")


class Migration(migrations.Migration):
    dependencies = [("hub", "0004_index_tokens"), ("teams", "0001_initial")]

    operations = [
        migrations.CreateModel("Star", [*columns(), ("environment", of_environment("stars"))], {"db_table": "hub_star"}),
        migrations.CreateModel(
            "Collaborator", [*columns(), ("environment", of_environment("collaborators"))], {"db_table": "hub_collaborator"}
        ),
        migrations.AddConstraint("star", models.UniqueConstraint(fields=["environment", "user"], name="star_once")),
        migrations.AddConstraint("collaborator", models.UniqueConstraint(fields=["environment", "user"], name="collaborator_once")),
        EnableRowSecurity("hub_star"),
        EnableRowSecurity("hub_collaborator"),
        migrations.AddField(
            "environment",
            "forked_from",
            models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="forks", to="hub.release"),
        ),
        migrations.AddField("environment", "search", django.contrib.postgres.search.SearchVectorField(null=True)),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddIndex("environment", django.contrib.postgres.indexes.GinIndex(fields=["search"], name="environment_by_words")),
    ]
