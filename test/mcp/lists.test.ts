import { describe, expect, it } from 'vitest';
import { isNamed, LIST_KINDS, LISTS, listsChangedBy, requestedList } from '../../src/mcp/lists.js';

describe('a list', () => {
  it.each(LIST_KINDS)('of %s is asked for by its method and said to have changed by its notification', (kind) => {
    expect(requestedList(LISTS[kind].method)).toBe(kind);
    expect(listsChangedBy(LISTS[kind].changed)).toContain(kind);
  });

  it('of resources changes together with that of their templates', () => {
    expect(listsChangedBy('notifications/resources/list_changed')).toEqual(['resources', 'templates']);
    expect(listsChangedBy('notifications/tools/list_changed')).toEqual(['tools']);
    expect(listsChangedBy('notifications/prompts/list_changed')).toEqual(['prompts']);
  });

  it.each(['tools/call', 'resources/read', 'tasks/list', '', '__proto__'])('is not asked for by %j', (method) => {
    expect(requestedList(method)).toBeUndefined();
    expect(listsChangedBy(method)).toEqual([]);
  });

  it('has names of its own unless its entries go by URIs', () => {
    expect(LIST_KINDS.filter(isNamed)).toEqual(['tools', 'prompts']);
  });
});
