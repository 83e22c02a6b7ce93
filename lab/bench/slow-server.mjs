// `tiny-server.mjs`, that many milliseconds later.
setTimeout(() => import('./tiny-server.mjs'), Number(process.argv[2]));
