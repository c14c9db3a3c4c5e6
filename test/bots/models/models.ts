/** Models for tests, as specs name them and as files. */
import { onnxFile, type Graph } from '../../../examples/models/onnx-file.ts';
import { digestOf, readModel, type Model, type ModelSpec } from '../../../src/bots/models/model.ts';

/** Weights of a row of close and return: the second counts more. */
export const WEIGHTS = [0.25, 3] as const;

/** `tanh(row · WEIGHTS)`. */
export const TANH: Graph = {
  nodes: [
    { operator: 'MatMul', inputs: ['row', 'w'], outputs: ['z'] },
    { operator: 'Tanh', inputs: ['z'], outputs: ['y'] },
  ],
  weights: [{ name: 'w', dims: [2, 1], values: WEIGHTS }],
  inputs: [{ name: 'row', dims: ['batch', 2] }],
  outputs: [{ name: 'y', dims: ['batch', 1] }],
};

export function specOf(bytes: Uint8Array, changes: Partial<ModelSpec> = {}): ModelSpec {
  return {
    name: 'm',
    path: './m.onnx',
    digest: digestOf(bytes),
    inputs: [{ column: 'close' }, { indicator: 'return', params: { period: 2 } }],
    outputs: [{ name: 'score', element: 0 }],
    ...changes,
  };
}

/** What keeps a graph from being the model that the spec says it is; none for one that is. */
export function faultsOf(graph: Partial<Graph>, changes: Partial<ModelSpec> = {}) {
  const bytes = onnxFile({ ...TANH, ...graph });
  const read = readModel(specOf(bytes, changes), bytes);
  return 'bytes' in read ? [] : read;
}

/** @throws when it is none. */
export function modelOf(graph: Partial<Graph> = {}, changes: Partial<ModelSpec> = {}): Model {
  const bytes = onnxFile({ ...TANH, ...graph });
  const read = readModel(specOf(bytes, changes), bytes);
  if ('bytes' in read) return read;
  throw new Error(JSON.stringify(read));
}
