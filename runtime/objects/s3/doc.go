// Package s3 is the driver of package objects for Amazon S3 and storages with its protocol. A
// program that imports it opens
//
//	s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION&profile=PROFILE
//
// with any of the parameters, or none:
//
//   - endpoint is the storage's address, AWS_ENDPOINT_URL_S3 or Amazon's when it is not given;
//   - region is that of the bucket, else AWS_REGION's or the profile's; storages at an endpoint
//     need none;
//   - profile is a profile of AWS's files of configuration and credentials;
//   - use_path_style, or s3ForcePathStyle, says whether the bucket is part of the path and not of
//     the host's name; true where there is an endpoint;
//   - anonymous=true asks without credentials.
//
// Credentials are found where AWS's own tools find them: AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY, the shared files, web identities, the roles of containers and machines.
// They need s3:GetObject and s3:PutObject on the prefix, and s3:ListBucket on the bucket, although
// nothing is listed: without it S3 answers 403 where an object is not there. The bucket exists
// already.
//
// An object is written by one request, so nothing half sent is left in the bucket. Requests that
// bring nothing for a minute fail, and are tried again by package objects, as are 5xx, 408 and 429;
// other answers of 4xx are final.
package s3
