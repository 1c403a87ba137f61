"""Money: meter events, price book, ledger, wallets. See README.md."""
