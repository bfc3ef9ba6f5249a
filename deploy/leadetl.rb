# A formula for a Homebrew tap. It builds the release of a tag for this machine.
class Leadetl < Formula
  desc "Turn lists of identifiers into lead data"
  homepage "https://github.com/leadetl/leadetl"
  url "https://github.com/leadetl/leadetl.git", tag: "v0.9.0"
  license "Apache-2.0"

  depends_on "go" => :build

  def install
    os = OS.mac? ? "darwin" : "linux"
    arch = Hardware::CPU.arm? ? "arm64" : "amd64"
    system "make", "release", "VERSION=v#{version}", "PLATFORMS=#{os}/#{arch}"
    system "tar", "-xzf", "dist/leadetl_#{version}_#{os}_#{arch}.tar.gz", "--strip-components", "1", "-C", prefix
  end

  test do
    (testpath/"emails.csv").write "id,email\n1,ada.example@bakery.example\n"
    system bin/"leadetl", "run", "email_to_hem", "--in", "emails.csv", "--out", "hems"
    assert_path_exists testpath/"hems/_SUCCESS"
  end
end
