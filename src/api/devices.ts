import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  machineHash,
  page,
  pageQuery,
  text,
  time,
} from './http.ts';

const tags = ['Devices'];

const DEVICE_ID = 'FxVhuO_Ir82yjJ8FMIoWpXpN_BZn-l_LcBqPspZfzfk';

/** Proof by the key of the example, for this request by that device. */
const SUCCESSOR_PROOF = [
  'eyJ0eXAiOiJzZXJ2aWNlLWxvY2FsLWRldmljZS1wcm9vZitqd3QiLCJhbGciOiJFZERTQSIsImtpZCI6IkU5MTZY',
  'VGpKQ0s4MnZBaWJFR0doQjNsRFY3d0FOdmxMZnhpQ05UcWZvX2MifQ.eyJpc3MiOiJFOTE2WFRqSkNLODJ2QWliR',
  'UdHaEIzbERWN3dBTnZsTGZ4aUNOVHFmb19jIiwic3ViIjoiRTkxNlhUakpDSzgydkFpYkVHR2hCM2xEVjd3QU52b',
  'ExmeGlDTlRxZm9fYyIsImF1ZCI6Imh0dHBzOi8vbGljZW5zZXMuZXhhbXBsZSIsImlhdCI6MTc2NzMyMzA0NSwiZ',
  'XhwIjoxNzY3MzIzMTA1LCJqdGkiOiIwMTk4YzBkZS0wMDAwLTcwMDAtODAwMC0wMDAwMDAwMDAwMDIiLCJodG0iO',
  'iJQT1NUIiwiaHR1IjoiaHR0cHM6Ly9saWNlbnNlcy5leGFtcGxlL2F1dGgvbGljZW5zZS9kZXZpY2VzL3JvdGF0Z',
  'SIsImJoIjoicFA4c1VYdEZjTDU1d3FMclBkaU44OHZsV0pTMHY0YlJ3b2hmRmhzZ3BNOCJ9.RgK4BIUSIgb7P-4U',
  'hW0To_lJapQT_lZFb1VAZx9dvHn4OEC7jgRID_7YWoH6htI8Mhc1KhGx8synHidgsdroCA',
].join('');

export const Device = z
  .strictObject({
    device_id: z
      .string()
      .openapi({ description: 'RFC 7638 thumbprint of the public key.', example: DEVICE_ID }),
    deployment_id: z.string(),
    x: z.string().describe('The public key as base64url.'),
    name: z.string(),
    enrolled_at: time,
    replaces: z
      .string()
      .nullable()
      .describe('The device whose key this key replaces when it is first used.'),
    first_used_at: time.nullable(),
    revoked_at: time.nullable(),
    revoked_by: z.string().nullable(),
    revoked_by_name: actorName,
    revoked_reason: z.string().nullable(),
    machine_hash: machineHash
      .nullable()
      .describe('The machine to which leases of the device are bound if the plan requires it.'),
  })
  .openapi('Device', { description: 'A machine that obtains leases with its own key.' });

export type Device = z.infer<typeof Device>;

const Jwk = z
  .strictObject({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z.string().regex(/^[\w-]{43}$/, 'must be 32 bytes in base64url'),
  })
  .openapi('DeviceKey', { description: 'The public half of a key pair, as a JWK (RFC 8037).' });

export const enrollDevice = defineRoute({
  method: 'post',
  path: '/auth/license/devices',
  operationId: 'enrolDevice',
  summary: 'Enroll a device with a code',
  description:
    'The proof is signed with the key in the body. A repeated request with the same code and key returns the same response, without time limit; another key is rejected.',
  tags,
  security: [{ new_device: [] }],
  request: {
    body: jsonBody(
      z
        .strictObject({
          code: z.string().max(100).describe('Enrollment code from an administrator; valid once.'),
          jwk: Jwk,
          name: text(200).describe('Name of the device for people.'),
          machine_hash: machineHash.optional(),
        })
        .openapi('Enrolment'),
      {
        device: {
          code: 'ABCD-EFGH-JKMN-PQRS-TVWX-YZ23-4567',
          jwk: { kty: 'OKP', crv: 'Ed25519', x: '6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw' },
          name: 'trading-1',
        },
      },
    ),
  },
  responses: { 201: jsonResponse('The device.', Device) },
  errors: ['not_authenticated', 'not_allowed', 'conflict'],
});

export const rotateDevice = defineRoute({
  method: 'post',
  path: '/auth/license/devices/rotate',
  operationId: 'rotateDevice',
  summary: 'Register the next key of a device',
  description:
    'Both keys are valid until the new key is first used; then only the new key is. The request can be repeated safely.',
  tags,
  security: [{ device: [] }],
  request: {
    body: jsonBody(
      z
        .strictObject({
          jwk: Jwk,
          proof: z
            .string()
            .max(4096)
            .describe(
              'A proof for this request, signed with the new key. Its `bh` is the hash of the id of the device that sends the request, because the body contains this proof.',
            ),
        })
        .openapi('Succession'),
      {
        device: {
          jwk: { kty: 'OKP', crv: 'Ed25519', x: 'E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o' },
          proof: SUCCESSOR_PROOF,
        },
      },
    ),
  },
  responses: { 201: jsonResponse('The device with the new key.', Device) },
  errors: ['conflict'],
});

const EnrollmentCode = z
  .strictObject({
    code: z
      .string()
      .describe(
        'If the issuer has a trust root, the code ends with a dot and the fingerprint of the root, with which the device checks the keys of the server.',
      ),
    root_fingerprint: z.string().nullable(),
    deployment_id: z.string(),
    expires_at: time,
  })
  .openapi('EnrolmentCode');

export const createEnrollmentCode = defineRoute({
  method: 'post',
  path: '/identity/deployments/{deployment_id}/enrolment-codes',
  operationId: 'createEnrolmentCode',
  narrowable: true,
  summary: 'Create a code to enroll a device of an installation',
  tags,
  security: administrator('license'),
  request: { params: z.strictObject({ deployment_id: id('acme-tokyo') }) },
  responses: {
    201: jsonResponse('The code, which is shown only here and enrolls one device.', EnrollmentCode),
  },
  errors: ['not_found', 'license_revoked'],
});

export const listDevices = defineRoute({
  method: 'get',
  path: '/identity/devices',
  operationId: 'listDevices',
  narrowable: true,
  summary: 'List the devices',
  tags,
  security: administrator('license'),
  request: { query: z.strictObject({ ...pageQuery, deployment_id: id('acme-tokyo').optional() }) },
  responses: { 200: jsonResponse('A page of devices, by id.', page(Device)) },
  errors: ['not_found'],
});

export const revokeDevice = defineRoute({
  method: 'post',
  path: '/identity/devices/{device_id}/revoke',
  operationId: 'revokeDevice',
  narrowable: true,
  summary: 'Revoke a device',
  description:
    'The device, and a successor key that it has registered, get no more leases. Leases that were already issued remain valid until they end.',
  tags,
  security: administrator('license'),
  request: {
    params: z.strictObject({ device_id: id(DEVICE_ID) }),
    body: jsonBody(z.strictObject({ reason: text(200) }).openapi('DeviceRevocation'), {
      lost: { reason: 'the machine was sold' },
    }),
  },
  responses: { 200: jsonResponse('The updated device.', Device) },
  errors: ['not_found'],
});
