-- What vouches for a blob comes with its registration, or later: beside a blob nothing can lie, as signatures lie beside an
-- image. It is kept as it was sent and judged anew with every verification.
alter table app_artifacts add column signature text;
