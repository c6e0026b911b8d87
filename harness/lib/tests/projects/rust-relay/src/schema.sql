-- The jobs of the relay.
create table jobs (
  id text primary key,
  execution_state text not null default 'pending',
  delivery_state text not null default 'pending'
    check (delivery_state in ('pending', 'claimed', 'delivered', 'bounced')),
  attempt integer not null default 0
);
create table audit (at_ms integer, line text);
