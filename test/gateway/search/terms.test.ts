import { describe, expect, it } from 'vitest';
import { isStopWord, stemOf, wordsOf } from '../../../src/gateway/search/terms.js';

describe('the words of a text', () => {
  it.each([
    ['create_issue', ['create', 'issue']],
    ['getHTTPStatus2', ['get', 'http', 'status2']],
    ['browser-tab.close', ['browser', 'tab', 'close']],
    ['Größe der Datei', ['große', 'der', 'datei']],
    ['S3 and k8s', ['s3', 'and', 'k8s']],
    ['文件搜索', ['文件', '件搜', '搜索']],
    ['水', ['水']],
    ['… !', []],
  ])('of %s are %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words);
  });
});

describe('a stem', () => {
  it.each([
    ['searching', 'searches'],
    ['repository', 'repositories'],
    ['created', 'create'],
    ['deletion', 'delete'],
  ])('is the same for %s and %s', (one, other) => {
    expect(stemOf(one)).toBe(stemOf(other));
  });
});

describe('a stop word', () => {
  it('says nothing about a tool', () => {
    expect(['please', 'the', 'want'].every(isStopWord)).toBe(true);
    expect(['search', 'file', 'list'].some(isStopWord)).toBe(false);
  });
});
