import { median } from './statistics.mjs';
import { OpenWay, tinyServer } from './ways.mjs';

const SERVERS = 20;
const TOOLS = 500;
/** The tools that every tiny server has are four of them. */
const IDLE_TOOLS = TOOLS - 4;

/** How long a gateway takes to tell of 10,000 tools that it knows: ms, of the first page, of the slowest and of all. */
export async function measureManyTools(ways, folder, { rounds }) {
  const results = new Map();
  for (const way of ways.filter(({ isGateway }) => isGateway)) {
    const servers = Array.from({ length: SERVERS }, (_, index) => [
      `server${index + 1}`,
      tinyServer('--tools', String(IDLE_TOOLS)),
    ]);
    const opened = await OpenWay.open(way, folder, Object.fromEntries(servers), SERVERS * TOOLS);
    try {
      const { client } = opened.to('server1', 'echo');
      const listings = [];
      for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
        const listing = await list(client);
        if (round >= 0) listings.push(listing);
      }
      results.set(way.name, listings);
    } finally {
      await opened.close();
    }
  }
  return results;
}

const WARM_UP_ROUNDS = 5;

/** Until the last byte is there; what the client makes of a page is not counted, nor is what that leaves behind. */
async function list(client) {
  const pages = await client.timePages();
  return {
    first: pages[0],
    slowest: Math.max(...pages),
    all: pages.reduce((sum, ms) => sum + ms, 0),
    pages: pages.length,
  };
}

export function manyToolsTables(results, { rounds }) {
  const ways = [...results].map(([name, listings]) => {
    const ms = (what) => median(listings.map((listing) => listing[what])).toFixed(1);
    return `${name}: first page ${ms('first')}, slowest page ${ms('slowest')}, all pages ${ms('all')} (${listings[0].pages})`;
  });
  return [
    `\`tools/list\` of ${SERVERS} servers with ${TOOLS} tools each, ms and pages; ${rounds} listings. ${ways.join('; ')}.`,
  ];
}
