import { join } from 'node:path';
import { expect, it } from 'vitest';
import { confinementPlaces } from '../../src/app/confined-servers.js';
import { load } from '../config/loading.js';

it('the files of users are closed for every confined server', () => {
  const http = { auth: { tokens: 'machines', variables: 'variables' } };
  const config = load(JSON.stringify({ servers: { a: { command: 'x' } }, gateway: { http } }));
  const { closed } = confinementPlaces(config, { HOME: '/home/ada' });
  expect(closed).toEqual(
    expect.arrayContaining(['machines', 'variables'].map((name) => join(config.file, '..', name))),
  );
});
