import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CLIENTS } from '../../../../src/setup/clients/files/client-table.js';

describe('the pages about clients', () => {
  it('have every client by the name that commands take', () => {
    const page = readFileSync('docs/clients.md', 'utf8');
    for (const { client } of CLIENTS) expect(page).toContain(`\`${client}\``);
  });

  it.each(['README.md', 'CHANGELOG.md'])('count the clients: %s', (file) => {
    expect(readFileSync(file, 'utf8')).toContain(`[${CLIENTS.length} clients](docs/clients.md)`);
  });
});
