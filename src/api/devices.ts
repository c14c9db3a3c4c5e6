import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  answer,
  defineRoute,
  id,
  json,
  machineHash,
  page,
  pageQuery,
  text,
  time,
} from './http.ts';

const tags = ['Devices'];

const DEVICE_ID = 'FxVhuO_Ir82yjJ8FMIoWpXpN_BZn-l_LcBqPspZfzfk';

/** By the key of the example, for this very request by that device. */
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
      .openapi({ description: 'RFC 7638 thumbprint of its public key.', example: DEVICE_ID }),
    deployment_id: z.string(),
    x: z.string().openapi({ description: 'The public key, base64url.' }),
    name: z.string(),
    enrolled_at: time,
    replaces: z.string().nullable().openapi({
      description: 'The device whose key this one takes the place of, once it is first used.',
    }),
    first_used_at: time.nullable(),
    revoked_at: time.nullable(),
    revoked_by: z.string().nullable(),
    revoked_by_name: actorName,
    revoked_reason: z.string().nullable(),
    machine_hash: machineHash.nullable().openapi({
      description: 'The machine to which its leases are bound if the plan requires it.',
    }),
  })
  .openapi('Device', { description: 'A machine that gets leases by itself, by a key of its own.' });

export type Device = z.infer<typeof Device>;

const Jwk = z
  .strictObject({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z.string().regex(/^[\w-]{43}$/, 'must be 32 bytes in base64url'),
  })
  .openapi('DeviceKey', { description: 'The public half of a key pair, as a JWK (RFC 8037).' });

// For devices.

export const enrollDevice = defineRoute({
  method: 'post',
  path: '/auth/license/devices',
  operationId: 'enrolDevice',
  summary: 'Enroll a device with a code',
  description:
    'The proof is by the key in the body. The same code and key get the same answer again, however late; another key is refused.',
  tags,
  security: [{ new_device: [] }],
  request: {
    body: json(
      z
        .strictObject({
          code: z.string().max(100).openapi({ description: 'Of an administrator; good once.' }),
          jwk: Jwk,
          name: text(200).openapi({ description: 'What people call the device.' }),
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
  responses: { 201: answer('The device.', Device) },
  errors: ['not_authenticated', 'not_allowed', 'conflict'],
});

export const rotateDevice = defineRoute({
  method: 'post',
  path: '/auth/license/devices/rotate',
  operationId: 'rotateDevice',
  summary: 'Register the next key of a device',
  description:
    'Both keys are good until the new one is first used; from then on only that is. Asking again does no harm.',
  tags,
  security: [{ device: [] }],
  request: {
    body: json(
      z
        .strictObject({
          jwk: Jwk,
          proof: z.string().max(4096).openapi({
            description:
              'A proof of this request by the new key. Its `bh` is of the id of the device that sends the request, for the body has this proof in it.',
          }),
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
  responses: { 201: answer('The device with the new key.', Device) },
  errors: ['conflict'],
});

// For administrators.

const EnrollmentCode = z
  .strictObject({
    code: z.string().openapi({
      description:
        "Where the issuer has a trust root, the root's fingerprint follows a dot: the device checks the keys of the server by it.",
    }),
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
  summary: 'Make a code with which a device of a deployment can be enrolled',
  tags,
  security: administrator('license'),
  request: { params: z.strictObject({ deployment_id: id('acme-tokyo') }) },
  responses: {
    201: answer('The code, told this once. It is good for one device.', EnrollmentCode),
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
  responses: { 200: answer('A page of devices, by id.', page(Device)) },
  errors: ['not_found'],
});

export const revokeDevice = defineRoute({
  method: 'post',
  path: '/identity/devices/{device_id}/revoke',
  operationId: 'revokeDevice',
  narrowable: true,
  summary: 'Refuse a device from now on',
  description:
    'It gets no leases any more, and neither does a key that it registered to come after its own. The leases it has go on until they end.',
  tags,
  security: administrator('license'),
  request: {
    params: z.strictObject({ device_id: id(DEVICE_ID) }),
    body: json(z.strictObject({ reason: text(200) }).openapi('DeviceRevocation'), {
      lost: { reason: 'the machine was sold' },
    }),
  },
  responses: { 200: answer('The device as it is now.', Device) },
  errors: ['not_found'],
});
