-- Every entry that was written so far says what it is for, too. Posting goes on while they are read.
alter table ledger_entries validate constraint ledger_entries_name_what_they_are_for;
