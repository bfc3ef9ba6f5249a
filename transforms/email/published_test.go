package email

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// published are addresses whose digest a platform has published: what its
// servers will look for.
var published = []struct {
	source, cell            string
	profile                 Profile
	form, algorithm, digest string
}{
	// Source: unifiedid.com/docs/getting-started/gs-normalization-encoding.
	{"unifiedid.com", "USER@example.com", UID2, "user@example.com", "sha256", "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514"},
	{"unifiedid.com", "USER@example.com", UID2, "user@example.com", "sha256_b64", "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf/F5HVRQ="},
	{"unifiedid.com", "MyEmail@example.com", UID2, "myemail@example.com", "sha256", "16c18d336f0b250f0e2d907452ceb9658a74ecdae8bc94864c23122a72cc27a5"},
	{"unifiedid.com", "MYEMAIL@example.com", UID2, "myemail@example.com", "sha256_b64", "FsGNM28LJQ8OLZB0Us65ZYp07NrovJSGTCMSKnLMJ6U="},
	{"unifiedid.com", "My.Email@example.com", UID2, "my.email@example.com", "sha256", "e22b53bc6f871274f3a62ab37a3caed7214fc14d676215a96a242fcfada1c81f"},
	{"unifiedid.com", "JANESAOIRSE@example.com", UID2, "janesaoirse@example.com", "sha256", "d6670e7a92007f1b5ff785f1fc81e53aa6d3d7bd06bdf5c473cdc7286c284b6d"},
	{"unifiedid.com", "JaneSaoirse@example.com", UID2, "janesaoirse@example.com", "sha256_b64", "1mcOepIAfxtf94Xx/IHlOqbT170GvfXEc83HKGwoS20="},
	{"unifiedid.com", "Jane.Saoirse@example.com", UID2, "jane.saoirse@example.com", "sha256", "b196432c7b989a2ca91c83799957c515da53e6c13abf20b78fea94f117e90bf8"},
	{"unifiedid.com", "JaneSaoirse+Work@example.com", UID2, "janesaoirse+work@example.com", "sha256", "28aaee4815230cd3b4ebd88c515226550666e91ac019929e3adac3f66c288180"},
	{"unifiedid.com", "JANE.SAOIRSE@gmail.com", UID2, "janesaoirse@gmail.com", "sha256", "92ee26057ed9dea2535d6c8b141d48373932476599196e00352254896db5888f"},
	{"unifiedid.com", "Jane.Saoirse@gmail.com", UID2, "janesaoirse@gmail.com", "sha256_b64", "ku4mBX7Z3qJTXWyLFB1INzkyR2WZGW4ANSJUiW21iI8="},
	{"unifiedid.com", "JaneSaoirse+Work@gmail.com", UID2, "janesaoirse@gmail.com", "sha256_b64", "ku4mBX7Z3qJTXWyLFB1INzkyR2WZGW4ANSJUiW21iI8="},
	// Source: github.com/IABTechLab/uid2-operator@ac64c26 src/test/java/com/uid2/operator/InputNormalizationTest.java (Apache-2.0).
	{"uid2-operator", "TEst.TEST@Test.com ", UID2, "test.test@test.com", "sha256_b64", "dvECjPKZHya0/SIhSGwP0m8SgTv1vzLxPULUOsm880M="},
	{"uid2-operator", "test.test@gmail.com", UID2, "testtest@gmail.com", "sha256_b64", "LkLfFrut8Tc3h/fIvYDiBKSbaMiau/DtaLBPQYszdMw="},
	{"uid2-operator", "test+test@test.com", UID2, "test+test@test.com", "sha256_b64", "rQ4yzdOz4uG8N54326QyZD6/JwqrXn4lmy34cVCojB8="},
	{"uid2-operator", "+test@test.com", UID2, "+test@test.com", "sha256_b64", "weFizOVVWKlLfyorbBU8oxYDv4HJtTZCPMyZ4THzUQE="},
	{"uid2-operator", "test+test@gmail.com", UID2, "test@gmail.com", "sha256_b64", "h5JGBrQTGorO7q6IaFMfu5cSqqB6XTp1aybOD11spnQ="},
	{"uid2-operator", "testtest@test.com", UID2, "testtest@test.com", "sha256_b64", "d1Lr/s4GLLX3SvQVMoQdIMfbQPMAGZYry+2V+0pZlQg="},
	{"uid2-operator", "  testtest@test.com  ", UID2, "testtest@test.com", "sha256_b64", "d1Lr/s4GLLX3SvQVMoQdIMfbQPMAGZYry+2V+0pZlQg="},
	{"uid2-operator", "  test.test@gmail.com  ", UID2, "testtest@gmail.com", "sha256_b64", "LkLfFrut8Tc3h/fIvYDiBKSbaMiau/DtaLBPQYszdMw="},
	{"uid2-operator", "TEst.TEst+123@GMail.Com", UID2, "testtest@gmail.com", "sha256_b64", "LkLfFrut8Tc3h/fIvYDiBKSbaMiau/DtaLBPQYszdMw="},
	{"uid2-operator", "\U0001F60Atesttest@test.com", UID2, "\U0001F60Atesttest@test.com", "sha256_b64", "fAFEUqApQ0V/M9mLj/IO54CgKgtQuARKsOMqtFklD4k="},
	{"uid2-operator", "foo@bar.com", UID2, "foo@bar.com", "sha256_b64", "DH5qQFhi5ALrdqcPiib8cy0Hwykx6frpqxWCkR0uijs="},
	// Source: developers.facebook.com/docs/marketing-api/conversions-api/parameters/customer-information-parameters.
	{"Meta", "John_Smith@gmail.com", Plain, "john_smith@gmail.com", "sha256", "62a14e44f765419d10fea99367361a727c12365e2520f32218d505ed9aa0f62f"},
	// Source: github.com/googleads/data-manager-python@5abbf5d tests/formatter_test.py (Apache-2.0).
	{"Google", "alexz@example.com", Google, "alexz@example.com", "sha256", "509e933019bb285a134a9334b8bb679dff79d0ce023d529af4bd744d47b4fd8a"},
	{"Google", "  ALEXZ@example.com   ", Google, "alexz@example.com", "sha256_b64", "UJ6TMBm7KFoTSpM0uLtnnf950M4CPVKa9L10TUe0/Yo="},
	{"Google", "Jefferson.Loves.hiking@gmail.com", Google, "jeffersonloveshiking@gmail.com", "", ""},
	{"Google", "Jefferson.LOVES.Hiking@googlemail.com", Google, "jeffersonloveshiking@googlemail.com", "", ""},
	// Source: github.com/googleads/data-manager-java@b15171a UserDataFormatterTest.java (Apache-2.0).
	{"Google", "j.e.f..ferson.Loves.hiking@googlemail.com", Google, "jeffersonloveshiking@googlemail.com", "", ""},
	{"Google", "Cloudy.SanFrancisco+shopping@gmail.com", Google, "cloudysanfrancisco@gmail.com", "sha256", "223ebda6f6889b1494551ba902d9d381daf2f642bae055888e96343d53e9f9c4"},
	{"Google", "Cloudy.SanFrancisco+shopping@googlemail.com", Google, "cloudysanfrancisco@googlemail.com", "sha256", "332ed5427d17deb381928a719533e85046d68d7e45553abb805852b7d631fcb7"},
	{"Google", "user.name+NYC@Example.com", Google, "user.name+nyc@example.com", "sha256", "f109a2a632fbcea5fc82049f50beed3d8621bf9034399f437fb622222acccdac"},
	// Source: accelerate.criteo.com/hc/en-us/articles/207388309-Cross-Device-Implementation.
	{"Criteo", "user@example.com", Plain, "user@example.com", "md5", "b58996c504c5638798eb6b511e6f49af"},
	// Source: docs.gravatar.com/rest/hash.
	{"Gravatar", "MyEmailAddress@example.com ", Plain, "myemailaddress@example.com", "sha256", "84059b07d4be67b806386c0aad8070a23f18836bbaae342275dc0a83414c32ee"},
	{"Gravatar", "MyEmailAddress@example.com ", Plain, "myemailaddress@example.com", "md5", "0bc83cb571cd1c50ba6f3e8a78ef1346"},
	// Source: ads.tiktok.com/help/preview?content_id=5gcDeV2ckkwNVh1BedxvSJ&lang=en.
	{"TikTok", "janedoe@gmail.com", Plain, "janedoe@gmail.com", "sha256", "d6117306485ed0e50afab3ac871e98f81699151f30281527d63ff5f233656c69"},
}

// unacceptable are addresses that a platform's own tests refuse, with our
// reason; "" where we take them on purpose. It has those that we refuse on purpose too.
var unacceptable = []struct{ source, cell, reason string }{
	// Source: github.com/IABTechLab/uid2-operator@ac64c26 src/test/java/com/uid2/operator/InputNormalizationTest.java (Apache-2.0).
	{"uid2-operator", "", "empty"},
	{"uid2-operator", " @", "invalid_email"},
	{"uid2-operator", "@", "invalid_email"},
	{"uid2-operator", "a@", "invalid_email"},
	{"uid2-operator", "@b", "invalid_email"},
	{"uid2-operator", "@b.com", "invalid_email"},
	{"uid2-operator", "+", "invalid_email"},
	{"uid2-operator", " ", "empty"},
	{"uid2-operator", "+@gmail.com", "no form"},
	{"uid2-operator", ".+@gmail.com", "no form"},
	{"uid2-operator", "a@ba@z.com", "invalid_email"},
	{"uid2-operator, which takes it", "testtest@\U0001F60Atest.com", "invalid_email"},
	{"uid2-operator, which takes it", "testtest@test.com\U0001F60A", "invalid_email"},
	// Source: github.com/IABTechLab/uid2-web-integrations@6048b60 diiNormalization.test.ts (Apache-2.0).
	{"uid2-web", "test test@test.com", "invalid_character"},
	{"uid2-web", "test@te st.com", "invalid_character"},
	{"uid2-web", "test test@gmail.com", "invalid_character"},
	// Source: github.com/facebook/capi-param-builder@b0b6f0b client_js/shared/tests/emailUtil.test.js.
	{"Meta", "invalid-email", "invalid_email"},
	{"Meta", "@example.com", "invalid_email"},
	{"Meta", "test@", "invalid_email"},
	{"Meta", "test..test@example.com", ""}, // such addresses exist
	{"Meta", "test@example", "invalid_email"},
	{"Meta", "test@example.", "invalid_email"},
	{"Meta", "test @example.com", "invalid_character"},
	{"Meta", "test@exam ple.com", "invalid_character"},
	{"Meta", "test@@example.com", "invalid_email"},
	{"Meta", "test@.example.com", "invalid_email"},
	{"Meta", "test@example..com", "invalid_email"},
	{"Meta", ".test@example.com", ""},
	{"Meta", "test.@example.com", ""},
	{"Meta", "test@example.com.", ""}, // the root dot names the same domain
}

func TestPublished(t *testing.T) {
	for _, f := range published {
		checkPublished(t, f.source, f.cell, f.profile, f.form, f.algorithm, f.digest)
	}
}

func checkPublished(t *testing.T, source, cell string, p Profile, form, algorithm, digest string) {
	t.Helper()
	a, err := Parse([]byte(cell))
	if err != nil {
		t.Errorf("%s: Parse(%q): %v", source, cell, err)
		return
	}
	got, ok := a.AppendForm(nil, p)
	if !ok || string(got) != form {
		t.Errorf("%s: %v form of %q = %q, %v, want %q", source, p, cell, got, ok, form)
	}
	sums := Sum(got)
	have := map[string]string{
		"":           "", // the form alone was published
		"md5":        hex.EncodeToString(sums.MD5[:]),
		"sha1":       hex.EncodeToString(sums.SHA1[:]),
		"sha256":     hex.EncodeToString(sums.SHA256[:]),
		"sha256_b64": base64.StdEncoding.EncodeToString(sums.SHA256[:]),
	}[algorithm]
	if have != digest {
		t.Errorf("%s: %s of %q = %s, want %s", source, algorithm, got, have, digest)
	}
}

func TestUnacceptable(t *testing.T) {
	for _, f := range unacceptable {
		if got := reason(f.cell); got != f.reason {
			t.Errorf("%s: %q is refused as %q, want %q", f.source, f.cell, got, f.reason)
		}
	}
}

// reason is why cell gives no hash in uid2, the profile with the most to
// refuse; "" when it gives one.
func reason(cell string) string {
	a, err := Parse([]byte(cell))
	if err != nil {
		return err.Error()
	}
	if _, ok := a.AppendForm(nil, UID2); !ok {
		return "no form"
	}
	return ""
}

// TestVectors reads the file the tables above restate, where it is at hand.
func TestVectors(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "vectors", "email_published.csv"))
	if err != nil {
		t.Skip("the vectors are not beside the project")
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	profiles := map[string]Profile{"plain": Plain, "uid2": UID2, "google_dots": Google, "google_dots_plus": Google}
	reasons := map[string]string{}
	for _, u := range unacceptable {
		reasons[u.cell] = u.reason
	}
	checked := 0
	for _, row := range rows[1:] {
		value := func(name string) string { return row[column[name]] }
		var cell, form string
		if err := json.Unmarshal([]byte(value("email_json")), &cell); err != nil {
			t.Fatal(err)
		}
		if value("published_algo") == "invalid" {
			checked++
			if want, ours := reasons[cell]; reason(cell) != want || !ours {
				t.Errorf("%s: %q is refused as %q", value("source"), cell, reason(cell))
			}
			continue
		}
		profile, ours := profiles[value("profile")]
		if !ours || reasons[cell] != "" {
			continue // rules that nobody we serve asks for, or refused on purpose
		}
		checked++
		if err := json.Unmarshal([]byte(value("normalized_json")), &form); err != nil {
			t.Fatal(err)
		}
		checkPublished(t, value("source"), cell, profile, form, value("published_algo"), value("published_digest"))
		checkPublished(t, value("source"), cell, profile, form, "sha256", value("sha256"))
	}
	if checked < 50 {
		t.Errorf("%d rows were checked, want 50 or more", checked)
	}
}
