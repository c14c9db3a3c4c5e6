/** A root and a signed keyset for the API's examples; their keys are public test keys. */
export const EXAMPLE_TRUST = {
  roots: [
    {
      payloadType: 'application/vnd.service-local.license-root.v1+json',
      payload: [
        'eyJleHBpcmVzX2F0IjoiMjA5OS0wMS0wMVQwMDowMDowMFoiLCJpc3N1ZWRfYXQiOiIyMDI2LTAxLTA1VDA5OjMw',
        'OjAwWiIsImlzc3VlciI6InNlcnZpY2UtbG9jYWwiLCJrZXlzIjpbeyJjcnYiOiJFZDI1NTE5Iiwia2lkIjoiRTkx',
        'NlhUakpDSzgydkFpYkVHR2hCM2xEVjd3QU52bExmeGlDTlRxZm9fYyIsImt0eSI6Ik9LUCIsIngiOiJFNWoyTEcw',
        'YVJYeFJ1bXBMWHoyOUwybjhxVElXSVkzSW1YNUJhOUY5azhvIn1dLCJ0aHJlc2hvbGQiOjEsInZlcnNpb24iOjF9',
      ].join(''),
      signatures: [
        {
          keyid: 'E916XTjJCK82vAibEGGhB3lDV7wANvlLfxiCNTqfo_c',
          sig: 'DPylzrH+kxagA5IutA2NCQ8q0IYM7EzmYRWxenEL6Iv4scl2gq7feJSgHUxzujgMNhuHY8P1dZtWsoFMqebdDw==',
        },
      ],
    },
  ],
  keyset: {
    payloadType: 'application/vnd.service-local.license-keyset.v1+json',
    payload: [
      'eyJleHBpcmVzX2F0IjoiMjA5OS0wMS0wMVQwMDowMDowMFoiLCJpc3N1ZWRfYXQiOiIyMDI2LTAxLTA1VDA5OjMwOjAw',
      'WiIsImlzc3VlciI6InNlcnZpY2UtbG9jYWwiLCJrZXlzIjpbeyJjcnYiOiJFZDI1NTE5Iiwia2lkIjoiMFl1Q1c0TjlM',
      'S1BzTzBqUEtLZ0RZbzNIN0hIMkxraVQ4WUx1RkdzbFpYSSIsImt0eSI6Ik9LUCIsIngiOiJibm9jM1Ntd3Q0X1JPdlRG',
      'V1lfdjlPOHFseFp1UEtieTVQdjh6WUJRV19FIn1dLCJyZXRpcmVkIjpbXSwicm9vdCI6IndzVy1MVEdDc2ZuWEJUNVll',
      'UHhIRXhPejNCS3VteVVUNS1rYkZrb3pVTXMiLCJ2ZXJzaW9uIjoxfQ==',
    ].join(''),
    signatures: [
      {
        keyid: 'E916XTjJCK82vAibEGGhB3lDV7wANvlLfxiCNTqfo_c',
        sig: 'K2F3NRfQlMoqJ+9i9CUz0B+Oa/YQUZixoWtXKafiyYYnUVFn294A4kmYYb+GjDGuGChQz9DuvsCMjSuradtoAA==',
      },
    ],
  },
};

export const EXAMPLE_ROOT_FINGERPRINT = 'wsW-LTGCsfnXBT5YePxHExOz3BKumyUT5-kbFkozUMs';

/** The public key of RFC 8032, §7.1, test 2. */
export const EXAMPLE_NEXT_KEY = 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw';
