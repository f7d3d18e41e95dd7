-- An entry that takes money names the usage and the price that it follows from, and a credit brings money in and names
-- nothing else: otherwise an entry could be sealed into the chain that nobody can hold against anything. Entries that are
-- there already are held to it by the next migration, so that nobody who posts waits for them to be read.
alter table ledger_entries add constraint ledger_entries_name_what_they_are_for check (
    case kind
        when 'credit' then amount_minor > 0
            and num_nonnulls(window_start, window_end, usage_source, usage_unit, app_instance_id, allocation_id, quantity,
                             price_id, price_version) = 0
        else num_nulls(window_start, window_end, usage_source, usage_unit, quantity, price_id, price_version) = 0
            and window_start < window_end
    end) not valid;
