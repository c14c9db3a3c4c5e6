/** Models for tests, as entries of specs and as files. */
import { onnxFile, type Graph } from '../../../examples/models/onnx-file.ts';
import { digestOf, readModel, type Model, type ModelSpec } from '../../../src/bots/models/model.ts';

/** Weights of the inputs close and return. */
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

/** Faults that `readModel` finds in a graph; empty for a valid model. */
export function faultsOf(graph: Partial<Graph>, changes: Partial<ModelSpec> = {}) {
  const bytes = onnxFile({ ...TANH, ...graph });
  const read = readModel(specOf(bytes, changes), bytes);
  return 'bytes' in read ? [] : read;
}

/** @throws if the graph has faults. */
export function modelOf(graph: Partial<Graph> = {}, changes: Partial<ModelSpec> = {}): Model {
  const bytes = onnxFile({ ...TANH, ...graph });
  const read = readModel(specOf(bytes, changes), bytes);
  if ('bytes' in read) return read;
  throw new Error(JSON.stringify(read));
}
