import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { onnxFile, type Graph } from '../../../examples/models/onnx-file.ts';
import type { ModelSpec } from '../../../src/bots/models/model.ts';
import { readModel } from '../../../src/bots/models/model.ts';
import { readOnnx } from '../../../src/bots/models/onnx.ts';
import { faultsOf, modelOf, specOf, TANH } from './models.ts';

const output = (dims: Graph['outputs'][number]['dims'], type = 1) => [{ name: 'y', dims, type }];
const input = (dims: Graph['inputs'][number]['dims'], type = 1) => [{ name: 'row', dims, type }];
const node = (operator: string, domain = ''): Graph['nodes'] => [
  ...TANH.nodes,
  { operator, domain, inputs: ['y'], outputs: ['o'] },
];

describe('a model', () => {
  it('has the input and outputs of its file', () => {
    expect(modelOf()).toMatchObject({
      input: { name: 'row', type: 'float32', rank: 2 },
      from: ['y'],
    });
    expect(modelOf({ inputs: input([2]) }).input.rank).toBe(1);
    expect(modelOf({ inputs: input([1, 2], 11) }).input.type).toBe('float64');
    expect(modelOf({}, { outputs: [{ name: 'a', from: 'y', element: 0 }] }).from).toEqual(['y']);
  });

  const cases: readonly (readonly [string, Partial<Graph>, Partial<ModelSpec>, string, RegExp])[] =
    [
      ['another digest', {}, { digest: 'sha256:0' }, 'digest', /digest does not match/],
      [
        'two inputs',
        { inputs: [...TANH.inputs, { name: 'b', dims: [1] }] },
        {},
        'inputs',
        /has 2 in/,
      ],
      ['no input', { inputs: [] }, {}, 'inputs', /has 0 inputs/],
      ['whole numbers for input', { inputs: input([1, 2], 7) }, {}, 'inputs', /float32 or float64/],
      ['another width', { inputs: input([1, 3]) }, {}, 'inputs', /takes 3 numbers, but 2 inputs/],
      ['an open width', { inputs: input([1, 'n']) }, {}, 'inputs', /has the shape \[1, n\]/],
      ['several rows', { inputs: input([4, 2]) }, {}, 'inputs', /has the shape \[4, 2\]/],
      ['three dimensions', { inputs: input([1, 1, 2]) }, {}, 'inputs', /must be \[n\] or \[1, n\]/],
      ['a number', { inputs: input([]) }, {}, 'inputs', /has the shape \[\]/],
      ['no output', { outputs: [] }, {}, 'outputs/0', /has 0 outputs/],
      [
        'two outputs of which none is named',
        { outputs: [...TANH.outputs, { name: 'z', dims: [1, 1] }] },
        {},
        'outputs/0',
        /has 2 outputs; choose one with from: y, z/,
      ],
      [
        'an output that it has not',
        {},
        { outputs: [{ name: 'a', from: 'x', element: 0 }] },
        'outputs/0/from',
        /no such output; its outputs: y/,
      ],
      [
        'a number that it has not',
        {},
        { outputs: [{ name: 'a', element: 1 }] },
        'outputs/0/element',
        /has 1 numbers, so element must be below 1/,
      ],
      ['labels for output', { outputs: output(['n'], 7) }, {}, 'outputs/0', /float32 or float64/],
      [
        'an open output',
        { outputs: output([1, 'n']) },
        {},
        'outputs/0',
        /all dimensions except the first/,
      ],
      [
        'random numbers',
        { nodes: node('RandomNormalLike') },
        {},
        'path',
        /not supported: RandomNorm/,
      ],
      ['a loop', { nodes: node('Loop') }, {}, 'path', /not supported: Loop/],
      ['a foreign operator', { nodes: node('Evil', 'x') }, {}, 'path', /not supported: x\.Evil/],
      [
        'too many operators',
        { nodes: Array.from({ length: 2001 }, () => TANH.nodes[1]!) },
        {},
        'path',
        /has 2001 operators; at most 2000/,
      ],
    ];
  it.each(cases)('with %s is rejected', (_what, graph, spec, at, message) => {
    expect(faultsOf(graph, spec).map((fault) => [fault.at.join('/'), fault.message])).toEqual([
      [at, expect.stringMatching(message)],
    ]);
  });

  it('with weights in other files is rejected', () => {
    const bytes = onnxFile(TANH);
    // Sets data_location of the tensor `w` to EXTERNAL.
    const name = Buffer.from(bytes).indexOf(Buffer.from([0x42, 1, 'w'.charCodeAt(0)]));
    const location = Buffer.from([0x70, 1]);
    const outside = grown(bytes, name, location);
    expect(readOnnx(outside)).toMatchObject({ isInParts: true });
    expect(readModel(specOf(outside), outside)).toMatchObject([
      { at: ['path'], code: 'invalid_model', message: expect.stringContaining('in other files') },
    ]);
  });

  it('with far too many messages is rejected quickly', () => {
    // Half a million empty operators, inputs, or sparse weights.
    for (const key of [0x0a, 0x5a, 0x7a]) {
      const parts = Buffer.alloc(1_000_000, Buffer.from([key, 0]));
      // The graph, with its length in base 128.
      const bytes = Buffer.concat([Buffer.from([0x3a, 0xc0, 0x84, 0x3d]), parts]);
      expect(readOnnx(bytes)).toBeUndefined();
    }
  });

  it('that is too large is rejected', () => {
    const bytes = new Uint8Array(16 * 1024 * 1024 + 1);
    expect(readModel(specOf(new Uint8Array()), bytes)).toMatchObject([{ code: 'file_too_large' }]);
  });

  it('with another digest gets the digest of its file as suggestion', () => {
    expect(faultsOf({}, { digest: `sha256:${'0'.repeat(64)}` })).toMatchObject([
      { at: ['digest'], suggestion: specOf(onnxFile(TANH)).digest },
    ]);
  });
});

describe('a file of any bytes', () => {
  it('does not crash the reader', () => {
    const good = onnxFile(TANH);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(() => readModel(specOf(good), bytes)).not.toThrow();
      }),
    );
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(255), (at, byte) => {
        const damaged = good.slice();
        damaged[at] = byte;
        expect(() => readModel(specOf(damaged), damaged)).not.toThrow();
        expect(() => readModel(specOf(good), good.subarray(0, at))).not.toThrow();
      }),
    );
  });
});

/** Inserts a protocol buffer field into the tensor around `at` and corrects the lengths. */
function grown(bytes: Uint8Array, at: number, field: Uint8Array): Uint8Array {
  const copy = Buffer.concat([bytes.subarray(0, at), field, bytes.subarray(at)]);
  const tensor = copy.lastIndexOf(0x2a, at);
  copy[tensor + 1]! += field.length;
  const graph = copy.indexOf(0x3a);
  copy[graph + 1]! += field.length;
  return copy;
}
