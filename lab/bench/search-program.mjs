// The search of a checkout, as `search.mjs` measures it. It is bundled before it is imported.
export { Catalog } from '../../src/gateway/catalog/catalog.js';
export { EMPTY_LIST } from '../../src/gateway/catalog/exposed-list.js';
export { findTools } from '../../src/gateway/search/find-tools.js';
export { createSearchTools } from '../../src/gateway/search/search-mode.js';
export { tokensOfList } from '../../src/wire/mcp/entry-check.js';
