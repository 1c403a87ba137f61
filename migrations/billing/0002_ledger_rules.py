"""What the database itself guarantees of the ledger, whoever writes to it.

An entry belongs to its transfer's and its account's team; it moves its account's balance, which nothing else can; and at commit
every transfer's entries sum to zero.
"""

from django.db import migrations

SAME_TEAM = """
ALTER TABLE billing_account ADD CONSTRAINT account_of_team UNIQUE (id, team_id);
ALTER TABLE billing_transfer ADD CONSTRAINT transfer_of_team UNIQUE (id, team_id);
ALTER TABLE billing_ledgerentry
  ADD CONSTRAINT entry_in_own_account FOREIGN KEY (account_id, team_id) REFERENCES billing_account (id, team_id),
  ADD CONSTRAINT entry_in_own_transfer FOREIGN KEY (transfer_id, team_id) REFERENCES billing_transfer (id, team_id);
"""
FREE_TEAM = """
ALTER TABLE billing_ledgerentry DROP CONSTRAINT entry_in_own_account, DROP CONSTRAINT entry_in_own_transfer;
ALTER TABLE billing_account DROP CONSTRAINT account_of_team;
ALTER TABLE billing_transfer DROP CONSTRAINT transfer_of_team;
"""

# Depth 1 is a statement of the application; depth 2 is the move that an entry causes.
BALANCES = """
CREATE FUNCTION billing_move_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE billing_account SET balance_microusd = balance_microusd + NEW.amount_microusd WHERE id = NEW.account_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the account of ledger entry % is not visible', NEW.id USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER move_balance AFTER INSERT ON billing_ledgerentry FOR EACH ROW EXECUTE FUNCTION billing_move_balance();

CREATE FUNCTION billing_guard_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() < 2 THEN
    RAISE EXCEPTION 'a balance is the sum of its entries and is not written' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER guard_new_balance BEFORE INSERT ON billing_account
  FOR EACH ROW WHEN (NEW.balance_microusd <> 0) EXECUTE FUNCTION billing_guard_balance();
CREATE TRIGGER guard_balance BEFORE UPDATE ON billing_account
  FOR EACH ROW WHEN (NEW.balance_microusd <> OLD.balance_microusd) EXECUTE FUNCTION billing_guard_balance();
"""
FREE_BALANCES = """
DROP TRIGGER guard_balance ON billing_account;
DROP TRIGGER guard_new_balance ON billing_account;
DROP TRIGGER move_balance ON billing_ledgerentry;
DROP FUNCTION billing_guard_balance();
DROP FUNCTION billing_move_balance();
"""

# Runs at commit, when the scope that wrote the entries may have ended: the check sees every row, and puts the scope back.
BALANCED = """
CREATE FUNCTION billing_check_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  scope text := current_setting('rootstock.scope', true);
  total numeric;
BEGIN
  PERFORM set_config('rootstock.scope', 'system', true);
  SELECT sum(amount_microusd) INTO total FROM billing_ledgerentry WHERE transfer_id = NEW.transfer_id;
  PERFORM set_config('rootstock.scope', coalesce(scope, ''), true);
  IF total IS DISTINCT FROM 0 THEN
    RAISE EXCEPTION 'transfer % does not balance: its entries sum to %', NEW.transfer_id, total USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON billing_ledgerentry
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION billing_check_balanced();
"""
FREE_BALANCED = """
DROP TRIGGER balanced ON billing_ledgerentry;
DROP FUNCTION billing_check_balanced();
"""


class Migration(migrations.Migration):

    dependencies = [("billing", "0001_initial")]

    operations = [
        migrations.RunSQL(SAME_TEAM, FREE_TEAM),
        migrations.RunSQL(BALANCES, FREE_BALANCES),
        migrations.RunSQL(BALANCED, FREE_BALANCED),
    ]
