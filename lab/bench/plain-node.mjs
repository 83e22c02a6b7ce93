// What some machines add to each start of Node, and others do not: Node 20 reads extra certificates before it runs
// anything, about 40 ms for a whole system's. Whoever imports this starts its processes without.
delete process.env.NODE_EXTRA_CA_CERTS;
// One process of Trunkline for each client, as with `--no-hub`. What measures the hub says so.
process.env.TRUNKLINE_HUB = 'off';
