import { randomUUID } from 'node:crypto';
import type { GetSecretValueCommandOutput } from '@aws-sdk/client-secrets-manager';
import { ServiceError } from '../../base/errors.ts';
import { awsFailure, clientOptions, installed, type AwsPlace } from './aws.ts';
import type { SecretStore, SecretVersion } from './secret-store.ts';

const CURRENT = 'AWSCURRENT';

/**
 * Stores secrets in AWS Secrets Manager, which uses the token as the version ID. Writing the same
 * value with the same token again has no effect; AWS rejects a different value with that token.
 *
 * @throws ServiceError `conflict`, reason `not_installed`
 */
export async function openAwsStore(
  place: AwsPlace & { readonly kms_key?: string | undefined },
): Promise<SecretStore> {
  const sdk = await installed(
    '@aws-sdk/client-secrets-manager',
    import('@aws-sdk/client-secrets-manager'),
  );
  const client = new sdk.SecretsManagerClient(clientOptions(place));

  const isNamed = (error: unknown, name: string): boolean => (error as Error).name === name;

  /** @returns the ID of the version that is current afterward. */
  const change = async (SecretId: string, SecretString: string, token: string): Promise<string> => {
    const put = { SecretId, SecretString, ClientRequestToken: token };
    const { VersionStages = [] } = await client.send(new sdk.PutSecretValueCommand(put));
    if (VersionStages.includes(CURRENT)) return token;
    // A version with this token exists but is not current. Only a new token makes its value current.
    const again = { ...put, ClientRequestToken: randomUUID() };
    await client.send(new sdk.PutSecretValueCommand(again));
    return again.ClientRequestToken;
  };
  const write = async (name: string, value: string, token: string): Promise<string> => {
    try {
      return await change(name, value, token);
    } catch (error) {
      if (!isNamed(error, 'ResourceNotFoundException')) throw error;
    }
    try {
      const KmsKeyId = place.kms_key;
      const Description = 'Written by `service-local cloud seed`.';
      const secret = { Name: name, Description, ...(KmsKeyId !== undefined && { KmsKeyId }) };
      const version = { SecretString: value, ClientRequestToken: token };
      await client.send(new sdk.CreateSecretCommand({ ...secret, ...version }));
      return token;
    } catch (error) {
      // Another client created the secret in the meantime.
      if (!isNamed(error, 'ResourceExistsException')) throw error;
    }
    return change(name, value, token);
  };

  const read = async (SecretId: string, stage: string): Promise<SecretVersion | undefined> => {
    let got: GetSecretValueCommandOutput;
    try {
      const command = new sdk.GetSecretValueCommand({ SecretId, VersionStage: stage });
      got = await client.send(command);
    } catch (error) {
      if (isNamed(error, 'ResourceNotFoundException')) return undefined;
      throw awsFailure(`read ${SecretId}`, error);
    }
    const { SecretString: value = '', VersionId = '', CreatedDate } = got;
    return { value, version_id: VersionId, created_at: CreatedDate?.getTime() ?? 0 };
  };

  return {
    place: `AWS Secrets Manager${place.region === undefined ? '' : ` in ${place.region}`}`,
    async put(name, value, token) {
      try {
        return await write(name, value, token);
      } catch (error) {
        if (isNamed(error, 'ResourceExistsException')) {
          throw new ServiceError(
            'conflict',
            `cannot write ${name}: its version ${token} exists with a different value`,
            { reason: 'token_reused' },
          );
        }
        if (isNamed(error, 'InvalidRequestException')) {
          throw new ServiceError(
            'conflict',
            `cannot write ${name}: AWS does not allow changes to this secret now`,
            {
              reason: 'cloud_refused',
              remedy: `If the secret is scheduled for deletion, restore it with \`aws secretsmanager restore-secret --secret-id ${name}\`.`,
            },
          );
        }
        throw awsFailure(`write ${name}`, error);
      }
    },
    current: (name) => read(name, CURRENT),
    previous: (name) => read(name, 'AWSPREVIOUS'),
    close: () => client.destroy(),
  };
}
