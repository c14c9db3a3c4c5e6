import { z } from 'zod';
import { map, path, text } from './field-types.ts';
import { FEATURE_COLUMNS, INDICATOR_NAMES } from './models/features.ts';

const lowerCaseName = z
  .string()
  .max(64)
  .regex(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/, 'must be lower-case words joined by underscores');

const featureColumn = z.enum(FEATURE_COLUMNS);

const featureSchema = z
  .strictObject({
    column: featureColumn.optional().describe('Column of the bar, used unchanged.'),
    indicator: z
      .enum(INDICATOR_NAMES)
      .optional()
      .describe('Indicator over the bars up to this one. return: change since `period` bars ago.'),
    params: map(text(100), z.number().max(10_000), 10)
      .optional()
      .describe('All parameters of the indicator.'),
    of: featureColumn
      .optional()
      .describe('Source column of an indicator over a single series. Default: close.'),
    line: text(100)
      .optional()
      .describe('Output of an indicator with several. Default: its main one.'),
    over: featureColumn.optional().describe('Column by which the value is divided.'),
  })
  .meta({ oneOf: [{ required: ['column'] }, { required: ['indicator'] }] });

export const MOST_MODELS = 50;

const modelOutputSchema = z.strictObject({
  name: lowerCaseName.describe('Name in strategies: `instrument.signal(name)`.'),
  from: text(200).optional().describe('Output of the model. Required if it has several.'),
  element: z
    .int()
    .min(0)
    .max(65_535)
    .default(0)
    .describe('Index of the number in the output, from 0.'),
});

export const mlModelSchema = z
  .strictObject({
    name: lowerCaseName,
    path: path
      .regex(/\.onnx$/, 'must be an .onnx file')
      .describe('ONNX file, relative to this file.'),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hexadecimal digits')
      .describe('SHA-256 of the file; a file with another digest is rejected.'),
    inputs: z
      .array(featureSchema)
      .min(1)
      .max(1000)
      .describe('Inputs of the model, one number for each bar and entry, in this order.'),
    outputs: z.array(modelOutputSchema).min(1).max(100),
  })
  .describe(
    'ONNX model that runs on each bar of each symbol. Until all inputs are numbers, its outputs are NaN.',
  );
