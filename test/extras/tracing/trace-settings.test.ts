import { describe, expect, it } from 'vitest';
import { describeSampler, traceSettings } from '../../../src/extras/tracing/trace-settings.js';

const BASE = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const endpointOf = (...given: Parameters<typeof traceSettings>) => {
  const settings = traceSettings(...given);
  return typeof settings === 'object' ? settings.endpoint : settings;
};

describe('the settings of traces', () => {
  it('are absent if nothing asks for traces', () => {
    expect(traceSettings({}, undefined)).toBeUndefined();
    expect(traceSettings({}, 'off')).toBeUndefined();
    expect(traceSettings({ OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, undefined)).toBeUndefined();
  });

  it('take the endpoint of the variables, to which the path is appended unless it is that of traces', () => {
    expect(traceSettings(BASE, undefined)).toEqual({
      endpoint: 'http://collector:4318/v1/traces',
      sampler: { ratio: 1, followsParent: true },
      ...{ insertsContext: false, hasContent: false, from: 'OTEL_EXPORTER_OTLP_ENDPOINT' },
    });
    expect(endpointOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://x/otlp/' }, undefined)).toBe('https://x/otlp/v1/traces');
    const both = { ...BASE, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://other/spans' };
    expect(endpointOf(both, undefined)).toBe('http://other/spans');
    expect(endpointOf({ OTEL_TRACES_EXPORTER: 'otlp' }, {})).toBe('http://localhost:4318/v1/traces');
  });

  it('take those of the configuration first, and no headers of the variables for its endpoint', () => {
    expect(traceSettings(BASE, { endpoint: 'https://own/v1/traces', sample: 0.25, insert: true })).toEqual({
      ...{ endpoint: 'https://own/v1/traces', headers: {}, sampler: { ratio: 0.25, followsParent: true } },
      ...{ insertsContext: true, hasContent: false, from: 'gateway.tracing' },
    });
    expect(traceSettings(BASE, { content: true })).not.toHaveProperty('headers');
  });

  it.each([
    [BASE, 'off', 'gateway.tracing is off'],
    [{ ...BASE, OTEL_SDK_DISABLED: 'TRUE' }, { endpoint: 'http://x' }, 'OTEL_SDK_DISABLED is true'],
    [{ ...BASE, OTEL_TRACES_EXPORTER: 'none' }, { endpoint: 'http://x' }, 'OTEL_TRACES_EXPORTER is none'],
    [{ ...BASE, OTEL_TRACES_EXPORTER: 'console' }, undefined, 'OTEL_TRACES_EXPORTER is not otlp'],
    [{ ...BASE, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, undefined, 'OTEL_EXPORTER_OTLP_PROTOCOL is grpc'],
    [{}, { sample: 1 }, 'no endpoint is set'],
    [BASE, { fault: 'a secret is missing' }, 'a secret is missing'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, undefined, 'the endpoint in OTEL_EXPORTER_OTLP_ENDPOINT'],
    [{ ...BASE, OTEL_TRACES_SAMPLER: 'jaeger_remote' }, undefined, 'OTEL_TRACES_SAMPLER or'],
    [
      { ...BASE, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
      undefined,
      'OTEL_TRACES_SAMPLER or',
    ],
  ] as const)('are off for %j and %j, because %s', (env, config, because) => {
    expect(traceSettings(env, config)).toContain(because);
  });

  it.each([
    ['always_on', 'always_on'],
    ['always_off', 'always_off'],
    ['traceidratio', 'traceidratio 0.5'],
    ['parentbased_always_off', 'parentbased_always_off'],
    ['parentbased_traceidratio', 'parentbased_traceidratio 0.5'],
  ])('have the sampler %s', (OTEL_TRACES_SAMPLER, text) => {
    const settings = traceSettings({ ...BASE, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG: '0.5' }, undefined);
    expect(typeof settings === 'object' && describeSampler(settings.sampler)).toBe(text);
  });
});
