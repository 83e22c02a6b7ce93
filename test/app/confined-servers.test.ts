import { join } from 'node:path';
import { expect, it } from 'vitest';
import { confinementPlaces } from '../../src/app/confined-servers.js';
import { load } from '../config/loading.js';

it('the files of users and of a cluster are closed for every confined server', () => {
  const http = { auth: { tokens: 'machines', variables: 'variables' } };
  // The variable is not set, as in a process that does not serve over HTTP.
  const places = { store: 'redis://store', advertise: `\${POD_IP}:7412` };
  const cluster = { ...places, storePasswordFile: 'password', storeCaFile: 'ca.pem' };
  const gateway = { http, cluster, sealKeyFile: 'key' };
  const config = load(JSON.stringify({ servers: { a: { command: 'x' } }, gateway }));
  const { closed } = confinementPlaces(config, { HOME: '/home/ada' });
  const files = ['machines', 'variables', 'password', 'ca.pem', 'key'];
  expect(closed).toEqual(expect.arrayContaining(files.map((name) => join(config.file, '..', name))));
});
