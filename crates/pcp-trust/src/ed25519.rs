//! The one Ed25519 of the product: signing from a secret, verifying by the strict rule.
//!
//! Strict means (R-205, C18): S below the group order, R and the key neither of small order nor written in a
//! second encoding, and the cofactorless equation of RFC 8032. There is no permissive variant to call by
//! mistake, and nothing takes a secret and a public key separately: a signer handed a foreign public key
//! gives its secret away (RUSTSEC-2022-0093), so the public key is always derived.

use std::fmt;
use std::fs::File;
use std::io::Read;

use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};

use crate::base64;
use crate::error::Error;

/// Bytes of a public key, on disk and on the wire (RFC 8032 5.1.5).
pub const PUBLIC_KEY_BYTES: usize = 32;
/// Bytes of a secret key: the seed, nothing derived from it (RFC 8032 5.1.5).
pub const SECRET_KEY_BYTES: usize = 32;
/// Bytes of a signature: R, then S (RFC 8032 5.1.6).
pub const SIGNATURE_BYTES: usize = 64;

/// Where new secrets come from. `/dev/random` and not `/dev/urandom`: since Linux 5.6 it waits once, until the
/// pool is seeded, and never again, and a device makes its keys in the first seconds of its first boot.
const RANDOM_SOURCE: &str = "/dev/random";

/// A signature as 64 bytes; whether they mean anything only [`Verifier::verify`] says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; SIGNATURE_BYTES]);

impl Signature {
    /// Takes the 64 bytes as they are.
    #[must_use]
    pub fn from_bytes(bytes: [u8; SIGNATURE_BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads standard padded base64, the form of a manifest's `signature` member.
    ///
    /// # Errors
    /// [`Error::SignatureForm`] unless the text is exactly what [`Signature::to_base64`] writes.
    pub fn from_base64(text: &str) -> Result<Self, Error> {
        let bytes = base64::decode(text).ok_or(Error::SignatureForm { length: text.len() })?;
        let bytes = bytes.try_into().map_err(|_| Error::SignatureForm { length: text.len() })?;
        Ok(Self(bytes))
    }

    /// The 64 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SIGNATURE_BYTES] {
        self.0
    }

    /// Standard padded base64 (RFC 4648 4), 88 characters.
    #[must_use]
    pub fn to_base64(&self) -> String {
        base64::encode(&self.0)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({})", self.to_base64())
    }
}

/// A public key that passed the strict rule when it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier(VerifyingKey);

impl Verifier {
    /// Reads a raw public key.
    ///
    /// # Errors
    /// [`Error::KeyLength`] unless there are exactly 32 bytes, [`Error::KeyInvalid`] if they are no point or not
    /// its only encoding, [`Error::KeyWeak`] if the point is of small order (such a key accepts forgeries).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let raw: &[u8; PUBLIC_KEY_BYTES] =
            bytes.try_into().map_err(|_| Error::KeyLength { length: bytes.len() })?;
        let key = VerifyingKey::from_bytes(raw).map_err(|_| Error::KeyInvalid)?;
        if key.is_weak() {
            return Err(Error::KeyWeak);
        }
        // Decoding also takes the second spelling of a few points; two spellings would be two keys for one.
        if key.to_edwards().compress().to_bytes() != *raw {
            return Err(Error::KeyInvalid);
        }
        Ok(Self(key))
    }

    /// The raw public key.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PUBLIC_KEY_BYTES] {
        self.0.to_bytes()
    }

    /// Checks `signature` over `message` by the strict rule.
    ///
    /// # Errors
    /// [`Error::BadSignature`], whatever part of the rule failed: a forger learns nothing from the difference.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), Error> {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).map_err(|_| Error::BadSignature)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verifier({})", base64::encode(&self.0.to_bytes()))
    }
}

/// A secret key; its memory is wiped when it is dropped.
pub struct Signer(SigningKey);

impl Signer {
    /// Takes the 32-byte seed; the public key is derived from it.
    #[must_use]
    pub fn from_secret_bytes(secret: &[u8; SECRET_KEY_BYTES]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// Makes a new key from the kernel's randomness.
    ///
    /// # Errors
    /// [`Error::Randomness`] if the kernel's source cannot be read.
    pub fn generate() -> Result<Self, Error> {
        let mut secret = [0; SECRET_KEY_BYTES];
        File::open(RANDOM_SOURCE)
            .and_then(|mut source| source.read_exact(&mut secret))
            .map_err(|source| Error::Randomness { path: RANDOM_SOURCE, source })?;
        let signer = Self::from_secret_bytes(&secret);
        secret.fill(0);
        // Without this the compiler may leave the wipe out: nothing reads the array again.
        std::hint::black_box(&secret);
        Ok(signer)
    }

    /// The seed, for writing it to the owner's key file.
    #[must_use]
    pub fn to_secret_bytes(&self) -> [u8; SECRET_KEY_BYTES] {
        self.0.to_bytes()
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn verifier(&self) -> Verifier {
        Verifier(self.0.verifying_key())
    }

    /// Signs `message`; the same message gives the same signature (RFC 8032 5.1.6).
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer(of {:?})", self.verifier())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
        assert_eq!(text.len(), 2 * N);
        std::array::from_fn(byte)
    }

    /// RFC 8032 7.1: (secret, public, message, signature).
    const RFC_8032: [(&str, &str, &str, &str); 3] = [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ];

    #[test]
    fn the_vectors_of_rfc_8032_sign_and_verify() {
        for (secret, public, message, signature) in RFC_8032 {
            let message: Vec<u8> = match message.len() {
                0 => vec![],
                2 => hex::<1>(message).to_vec(),
                _ => hex::<2>(message).to_vec(),
            };
            let signer = Signer::from_secret_bytes(&hex(secret));

            assert_eq!(signer.verifier().to_bytes(), hex(public));
            assert_eq!(signer.sign(&message).to_bytes(), hex(signature));
            let verifier = Verifier::from_bytes(&hex::<32>(public)).unwrap();
            verifier.verify(&message, &Signature::from_bytes(hex(signature))).unwrap();
        }
    }

    #[test]
    fn any_flipped_bit_of_a_signature_is_refused() {
        let signer = Signer::from_secret_bytes(&[7; 32]);
        let good = signer.sign(b"message").to_bytes();
        for bit in 0..SIGNATURE_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            let verdict = signer.verifier().verify(b"message", &Signature::from_bytes(bad));
            assert!(matches!(verdict, Err(Error::BadSignature)), "bit {bit}");
        }
    }

    #[test]
    fn keys_of_small_order_are_refused_at_load_in_every_spelling() {
        // The eight points of small order and the non-canonical spellings of some of them.
        let small_order = [
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000080",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            "0100000000000000000000000000000000000000000000000000000000000080",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        ];
        for key in small_order {
            let verdict = Verifier::from_bytes(&hex::<32>(key));
            assert!(matches!(verdict, Err(Error::KeyWeak | Error::KeyInvalid)), "{key}: {verdict:?}");
        }
    }

    #[test]
    fn a_second_spelling_of_a_full_order_point_is_refused() {
        // y = 3 is a point; 3 + p is the same y, one bit away from canonical.
        let canonical = "0300000000000000000000000000000000000000000000000000000000000000";
        let twin = "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f";
        Verifier::from_bytes(&hex::<32>(canonical)).unwrap();
        assert!(matches!(Verifier::from_bytes(&hex::<32>(twin)), Err(Error::KeyInvalid)));
    }

    #[test]
    fn a_key_is_exactly_32_bytes() {
        for length in [0, 31, 33, 64, 65] {
            let verdict = Verifier::from_bytes(&vec![9; length]);
            assert!(matches!(verdict, Err(Error::KeyLength { length: l }) if l == length));
        }
    }

    #[test]
    fn generated_keys_differ_and_sign() {
        let (one, two) = (Signer::generate().unwrap(), Signer::generate().unwrap());
        assert_ne!(one.verifier(), two.verifier());
        one.verifier().verify(b"x", &one.sign(b"x")).unwrap();
        assert!(two.verifier().verify(b"x", &one.sign(b"x")).is_err());
    }

    #[test]
    fn a_signer_comes_back_from_its_seed() {
        let signer = Signer::generate().unwrap();
        let again = Signer::from_secret_bytes(&signer.to_secret_bytes());
        assert_eq!(again.verifier(), signer.verifier());
    }

    #[test]
    fn the_debug_text_of_a_signer_holds_no_secret() {
        let text = format!("{:?}", Signer::from_secret_bytes(&[0xAB; 32]));
        assert!(!text.contains("171") && !text.to_lowercase().contains("abab"), "{text}");
    }
}
