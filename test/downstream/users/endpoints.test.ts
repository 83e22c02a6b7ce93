import { describe, expect, it } from 'vitest';
import { endpointFor } from '../../../src/downstream/users/user-check.js';

const VIEWS = [
  { name: 'dev', groups: ['eng', 'lead'], servers: ['github', 'files'] },
  { name: 'ops', groups: ['ops'], servers: ['files', 'cluster'], tools: { deny: ['cluster__drop'] } },
  { name: 'admin', groups: ['admin'] },
];
const WITH_PUBLIC = [...VIEWS, { name: 'public', servers: ['docs'] }];

describe('with groups at the views', () => {
  it.each<[groups: string[], asked: string | undefined, endpoint: string | undefined | 'closed']>([
    [['eng'], undefined, 'v/dev'],
    [['ops'], undefined, 'v/ops'],
    [['ops', 'lead'], undefined, 'v/dev'],
    [['admin'], undefined, 'v/admin'],
    [[], undefined, 'closed'],
    [['Eng'], undefined, 'closed'],
    [['eng'], 'v/dev', 'v/dev'],
    [['eng'], 'v/ops', 'closed'],
    [['eng'], 'v/admin', 'closed'],
    [['eng'], 'v/none', 'closed'],
    [['eng'], 'github', 'github'],
    [['eng'], 'cluster', 'closed'],
    // The view hides one of its tools, and the endpoint of the server would show it.
    [['ops'], 'cluster', 'closed'],
    [['ops'], 'files', 'closed'],
    [['ops', 'eng'], 'files', 'files'],
    [['admin'], 'cluster', 'cluster'],
    [[], 'github', 'closed'],
  ])('users of %j who ask for %s get %s', (groups, asked, endpoint) => {
    expect(endpointFor(asked, groups, VIEWS)).toEqual(endpoint === 'closed' ? undefined : { endpoint });
  });

  it('users of no group get the views without groups', () => {
    expect(endpointFor(undefined, [], WITH_PUBLIC)).toEqual({ endpoint: 'v/public' });
    expect(endpointFor('docs', [], WITH_PUBLIC)).toEqual({ endpoint: 'docs' });
    expect(endpointFor('github', [], WITH_PUBLIC)).toBeUndefined();
  });

  it('a view with an empty list of groups is open to nobody', () => {
    expect(endpointFor('v/closed', ['eng'], [{ name: 'closed', groups: [] }])).toBeUndefined();
  });
});

describe('without groups at the views', () => {
  it.each([undefined, 'github', 'v/dev', 'v/none'])('users who ask for %s get that', (asked) => {
    const views = VIEWS.map(({ groups: _, ...view }) => view);
    expect(endpointFor(asked, [], views)).toEqual({ endpoint: asked });
    expect(endpointFor(asked, [], [])).toEqual({ endpoint: asked });
  });
});
