// Tokens: nothing but `Authorization: Bearer TOKEN` counts, and each refusal says the same.
const auth =
  (make) =>
  ({ gateway }) => ({ headers: { authorization: make(gateway.token) } });
const OTHERS = {
  'no value': () => '',
  'the scheme alone': () => 'Bearer',
  'the scheme and a blank': () => 'Bearer ',
  'a wrong token': () => `Bearer ${'x'.repeat(43)}`,
  'the token without its last character': (token) => `Bearer ${token.slice(0, -1)}`,
  'the token without its first character': (token) => `Bearer ${token.slice(1)}`,
  'the token and one more character': (token) => `Bearer ${token}x`,
  'a character before the token': (token) => `Bearer x${token}`,
  'the token twice': (token) => `Bearer ${token}${token}`,
  'the token twice with a comma': (token) => `Bearer ${token}, Bearer ${token}`,
  'a wrong token, then the right one': (token) => `Bearer wrong, Bearer ${token}`,
  'the token in upper case': (token) => `Bearer ${token.toUpperCase()}`,
  'the token in lower case': (token) => `Bearer ${token.toLowerCase()}`,
  'the token in quotes': (token) => `Bearer "${token}"`,
  'the token with a NUL escape': (token) => `Bearer ${token}%00`,
  'the token in percent escapes': (token) => `Bearer %61${token.slice(1)}`,
  'the token in Base64': (token) => `Bearer ${Buffer.from(token).toString('base64')}`,
  'the token with a parameter': (token) => `Bearer ${token};x=y`,
  'the token without a scheme': (token) => token,
  'the scheme Basic': (token) => `Basic ${Buffer.from(`user:${token}`).toString('base64')}`,
  'the scheme Basic with the bare token': (token) => `Basic ${token}`,
  'the scheme Token': (token) => `Token ${token}`,
  'the scheme Digest': (token) => `Digest username="${token}"`,
  'the scheme Bearers': (token) => `Bearers ${token}`,
  'the scheme with a colon': (token) => `Bearer: ${token}`,
  'the scheme without a blank': (token) => `Bearer${token}`,
  'the text undefined': () => 'Bearer undefined',
  'the text null': () => 'Bearer null',
  'an asterisk': () => 'Bearer *',
  'a token of 12 KiB': () => `Bearer ${'x'.repeat(12_000)}`,
  'bytes beyond ASCII': (token) => `Bearer ${token.slice(0, -1)}\xe9`,
  'a soft hyphen in the token': (token) => `Bearer ${token.slice(0, 5)}\xad${token.slice(5)}`,
  'a token that is a path': () => 'Bearer ../../trunkline/token',
  'a JSON Web Token without a signature': () => 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.',
};

export const tokens = {
  name: 'tokens',
  attacks: [
    { name: 'the right token', expect: 200 },
    ...Object.entries(OTHERS).map(([name, make]) => ({ name, request: auth(make), expect: 401 })),
    { name: 'the scheme in lower case', request: auth((token) => `bearer ${token}`), expect: [200, 401] },
    { name: 'two blanks after the scheme', request: auth((token) => `Bearer  ${token}`), expect: [200, 401] },
    { name: 'no header', request: () => ({ headers: { authorization: undefined } }), expect: 401 },
    {
      name: 'two headers, the first one right',
      request: () => ({ lines: ['authorization: Bearer wrong'] }),
      expect: [200, 400, 401],
    },
    {
      name: 'two headers, the second one right',
      request: ({ gateway }) => ({
        headers: { authorization: 'Bearer wrong' },
        lines: [`authorization: Bearer ${gateway.token}`],
      }),
      expect: [400, 401],
    },
    {
      name: 'Proxy-Authorization',
      request: ({ gateway }) => ({
        headers: { authorization: undefined, 'proxy-authorization': `Bearer ${gateway.token}` },
      }),
      expect: 401,
    },
    {
      name: 'X-Authorization and X-Api-Key',
      request: ({ gateway }) => ({
        headers: { authorization: undefined, 'x-authorization': `Bearer ${gateway.token}`, 'x-api-key': gateway.token },
      }),
      expect: 401,
    },
    {
      name: 'a cookie',
      request: ({ gateway }) => ({
        headers: { authorization: undefined, cookie: `token=${gateway.token}; authorization=Bearer ${gateway.token}` },
      }),
      expect: 401,
    },
    {
      name: 'the query',
      request: ({ gateway }) => ({
        target: `/mcp?access_token=${gateway.token}&token=${gateway.token}`,
        headers: { authorization: undefined },
      }),
      expect: 401,
    },
    {
      name: 'the user of the address',
      request: ({ gateway, host }) => ({
        target: `http://${gateway.token}@${host}/mcp`,
        headers: { authorization: undefined },
      }),
      expect: [400, 401, 403, 404],
    },
    {
      name: 'the body',
      request: ({ gateway }) => ({
        headers: { authorization: undefined },
        body: JSON.stringify({ access_token: gateway.token }),
      }),
      expect: 401,
    },
    {
      name: 'the session instead of the token',
      request: ({ session }) => ({ headers: { authorization: `Bearer ${session}` } }),
      expect: 401,
    },
    {
      name: 'no token for GET',
      request: () => ({ method: 'GET', headers: { authorization: undefined } }),
      expect: 401,
    },
    {
      name: 'no token for DELETE',
      request: () => ({ method: 'DELETE', headers: { authorization: undefined } }),
      expect: 401,
    },
    {
      name: 'no token for a server',
      request: () => ({ target: '/mcp/sound', headers: { authorization: undefined } }),
      expect: 401,
    },
    {
      name: 'no token for a server that does not exist',
      request: () => ({ target: '/mcp/nobody', headers: { authorization: undefined } }),
      expect: [401, 404],
    },
    { name: 'a missing and a wrong token get the same answer', act: sameAnswer },
    { name: 'servers that exist and do not look the same without a token', act: sameServers },
    { name: 'eleven wrong tokens, then the right one', act: elevenWrong },
    { name: 'eleven wrong tokens of one address leave the next address alone', act: otherAddress },
  ],
};

async function refused(gateway, from, changed, target = '/mcp') {
  const headers = { ...gateway.headers(), 'content-length': 2, ...changed };
  const { responses } = await gateway.send({ target, headers, body: '{}' }, { from });
  const { status, headers: got, body } = responses[0];
  got.delete('date');
  return { status, text: `${status} ${body} ${[...got].join(' ')}`, retryAfter: got.get('retry-after') };
}

async function sameAnswer({ gateway, from }) {
  const answers = [];
  for (const authorization of [undefined, 'Bearer wrong', `Bearer ${gateway.token}x`, 'Basic abc'])
    answers.push((await refused(gateway, from, { authorization })).text);
  return new Set(answers).size === 1 ? undefined : answers.join(' / ');
}

async function sameServers({ gateway, from }) {
  const none = { authorization: undefined };
  const [one, other] = [
    await refused(gateway, from, none, '/mcp/sound'),
    await refused(gateway, from, none, '/mcp/nobody'),
  ];
  return one.text === other.text ? undefined : `${one.text} / ${other.text}`;
}

async function elevenWrong({ gateway }) {
  const from = '127.2.0.1';
  const statuses = [];
  let retryAfter;
  for (let times = 0; times < 11; times += 1) {
    const answer = await refused(gateway, from, { authorization: `Bearer wrong${times}` });
    statuses.push(answer.status);
    retryAfter = answer.retryAfter;
  }
  if (statuses.join() !== `${'401,'.repeat(10)}429`) return statuses.join();
  if (!(Number(retryAfter) > 0)) return `Retry-After: ${retryAfter}`;
  const id = await gateway.session({}, { from });
  return id === undefined ? 'the right token is refused' : undefined;
}

async function otherAddress({ gateway }) {
  for (let times = 0; times < 11; times += 1)
    await refused(gateway, '127.2.0.2', { authorization: `Bearer x${times}` });
  const { status } = await refused(gateway, '127.2.0.3', { authorization: 'Bearer x' });
  return status === 401 ? undefined : `${status} for the next address`;
}
