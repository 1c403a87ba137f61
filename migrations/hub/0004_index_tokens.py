import controlplane.core.clock
import django.db.models.deletion
import trainer.contracts.base
from controlplane.core.rls import EnableRowSecurity
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hub", "0003_trust_in_releases"), ("teams", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="IndexToken",
            fields=[
                ("id", models.CharField(default=trainer.contracts.base.new_id, editable=False, max_length=25, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=controlplane.core.clock.DatabaseNow(), editable=False)),
                ("token_sha256", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("created_by", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="teams.user")),
                ("environment", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="index_tokens", to="hub.environment")),
                ("key", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="teams.apikey")),
                ("team", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="teams.team")),
            ],
            options={"db_table": "hub_index_token"},
        ),
        migrations.AddIndex("indextoken", models.Index(fields=["environment", "expires_at"], name="index_token_by_expiry")),
        EnableRowSecurity("hub_index_token"),
    ]
