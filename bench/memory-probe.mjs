// Loaded into a gateway before its own code (`node --expose-gc --import`): tells whoever started it how much memory it
// takes, over a channel beside stdin and stdout, and ends with that.
process.on('message', (what) => {
  if (what === 'resident') {
    process.send(process.memoryUsage.rss());
    return;
  }
  // Once for what is garbage, and once for what its finalizers let go.
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  process.send({ resident: rss, inUse: heapUsed + external });
});
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
process.channel.unref();
